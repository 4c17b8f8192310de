"""Messages by quadrature: where the nodes are placed, and whether they resolve the function between them."""
