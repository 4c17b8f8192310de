"""How tests add up rows of any number, wherever they lie."""
