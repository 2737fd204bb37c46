"""What the HTTP servers share: limits on connections, headers and bodies, and checks of Host and Origin."""
