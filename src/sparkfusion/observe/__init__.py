"""What can be seen of a query: events while it runs, explain before and after."""
