"""How the weights that come with the package are made, from synthetic graphs alone."""
