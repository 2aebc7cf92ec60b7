"""The judge as an HTTP service, for jobs in other frameworks, containers and machines."""
