"""`sparkfusion doctor`: what is checked, and what is found."""
