"""What the user touches: Session, DataFrame, and the handle of a running query. The way of a query begins here."""
