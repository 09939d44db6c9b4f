// Package manifests has only tests, which check the deployment files (Dockerfile, docker-compose.yml, k8s/,
// deploy/helm, deploy/systemd) against the formats' own types and the services. With the build tag kubernetes (`make
// test-kubernetes`) a real kube-apiserver validates every object. They use no Docker engine, so errors that only Docker
// reports are not covered.
package manifests
