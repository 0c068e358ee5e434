"""Services at an address: how one is reached, how it is asked, what it says is wrong."""
