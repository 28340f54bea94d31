"""What users call: Session, DataFrame, and the handle of a running query. Every query starts here."""
