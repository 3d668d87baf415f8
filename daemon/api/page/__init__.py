"""The shop's page under `/ui/`: the API's use cases as screens for people."""
