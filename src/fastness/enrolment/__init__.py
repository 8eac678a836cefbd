"""How a machine gets a name here: ticket, key, endorsement, and later its kubelet certificate."""
