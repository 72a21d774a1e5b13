"""What producers and consumers share: the link to a broker, routes, client ids and shares of queues."""
