"""Messages by quadrature: where the nodes go, and whether they have seen the function between them."""
