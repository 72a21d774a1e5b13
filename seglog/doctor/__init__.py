"""The doctor: looks at a store that nobody need have open, says what is wrong with it, and puts it right."""
