"""What another controller, queue or segment size would do on a modelled path."""
