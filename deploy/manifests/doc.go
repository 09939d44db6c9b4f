// Package manifests holds no code: its tests hold what Parley is deployed with (Dockerfile, docker-compose.yml, k8s/) to the
// formats' own types and to the services themselves. There is no Docker engine and no cluster in them; what these could still refuse
// is not shown here.
package manifests
