"""Why a row is abnormal: what is typical, which columns are to blame, and which change would help."""
