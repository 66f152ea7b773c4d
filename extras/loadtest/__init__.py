"""`tandem loadtest`, which finds the load that a service bears; its client and servers are the laboratory's, too."""
