"""The judge as a service of its own, for jobs in other frameworks, containers and machines."""
