"""The rows of the table, one module for each thing that is measured."""
