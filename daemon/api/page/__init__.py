"""The shop's page under `/ui/`: what the API's use cases give, as screens for people."""
