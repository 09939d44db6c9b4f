package manifests

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/parley-chat/parley/pkg/config"
)

// edgeServices are the services that the edge connects to.
func edgeServices() []string { return []string{"client-api", "widget-api", "socket-gateway", "panel"} }

// trusted returns the networks of a service's TRUSTED_PROXIES and reports those that cover a private network:
// callers could then forge their address with an entry of their own in X-Forwarded-For.
func trusted(t *testing.T, where, text string) config.Prefixes {
	t.Helper()
	var networks config.Prefixes
	if err := networks.UnmarshalText([]byte(text)); err != nil {
		t.Fatalf("%s: %q: %v", where, text, err)
	}
	for _, network := range networks {
		if config.CoversPrivate(network) {
			t.Errorf("%s trusts %s, want the edge's network only", where, network)
		}
	}
	return networks
}

// Compose's services trust exactly the edge's address, in a network that they share with nothing else.
func TestComposeTrustsTheEdgeOnly(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"default": nil, "another": {"EDGE_SUBNET=198.51.100.0/28", "EDGE_ADDRESS=198.51.100.5"}} {
		project := compose(t, env...)
		edge := project.Services["edge"].Networks["edge"]
		if edge == nil || len(project.Services["edge"].Networks) != 1 {
			t.Fatalf("%s: got %+v, want a network of its own for the edge", name, project.Services["edge"].Networks)
		}
		address, err := netip.ParseAddr(edge.Ipv4Address)
		if err != nil {
			t.Fatalf("%s: got %v, want a fixed address for the edge", name, err)
		}
		if subnet := netip.MustParsePrefix(project.Networks["edge"].Ipam.Config[0].Subnet); !subnet.Contains(address) {
			t.Errorf("%s: got the address %s outside of %s", name, address, subnet)
		}
		built := ours(project)
		for service, s := range project.Services {
			_, inEdge := s.Networks["edge"]
			if service == "edge" {
				continue
			}
			if want := slices.Contains(edgeServices(), built[service]); inEdge != want {
				t.Errorf("%s: %s is in the edge's network: got %v, want %v", name, service, inEdge, want)
			}
			if !inEdge {
				continue
			}
			networks := trusted(t, service, *s.Environment["TRUSTED_PROXIES"])
			if want := netip.PrefixFrom(address, address.BitLen()); len(networks) != 1 || networks[0] != want {
				t.Errorf("%s: %s trusts %v, want %s", name, service, networks, want)
			}
		}
	}
}

// The overlays trust no private network as a whole; that of production names a placeholder to replace.
// TestChart compares the chart with it.
func TestKubernetesTrustsTheEdgeOnly(t *testing.T) {
	t.Parallel()
	production, dev := build(t, "production"), build(t, "dev")
	for _, service := range edgeServices() {
		text := production.settings(service, production.pods[service].Spec.Containers[0])["TRUSTED_PROXIES"]
		trusted(t, service, text)
		if text != "192.0.2.0/24" {
			t.Errorf("%s trusts %q, want the placeholder", service, text)
		}
		if text, ok := dev.settings(service, dev.pods[service].Spec.Containers[0])["TRUSTED_PROXIES"]; ok {
			t.Errorf("%s of the overlay dev trusts %s, want no edge", service, text)
		}
	}
}
