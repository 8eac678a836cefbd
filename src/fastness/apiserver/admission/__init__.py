"""The server's own rules, and the place where rules given from outside are asked."""
