// Package manifests holds no code: its tests hold what Parley is deployed with (Dockerfile, docker-compose.yml, k8s/, deploy/helm, deploy/systemd) to
// the formats' own types and to the services themselves. With the build tag kubernetes (`make test-kubernetes`) a real kube-apiserver takes
// every object. There is no Docker engine in them; what that could still refuse is not shown here.
package manifests
