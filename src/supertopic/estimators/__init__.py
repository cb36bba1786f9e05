"""What users see: scikit-learn estimators, and their model files."""
