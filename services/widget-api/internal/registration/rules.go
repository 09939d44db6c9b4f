package registration

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/parley-chat/parley/pkg/chat"
)

// Together these bound the memory of [rulesCache] to 8 MiB of widgetConfigs. Longer ones are parsed for each
// registration.
const (
	maxCachedRules   = 512
	maxCachedConfigs = 16 << 10
)

// rulesCache keeps the parsed rules of applications: parsing them cost a registration as much as half its token. The
// zero value is empty. It is safe for concurrent use.
type rulesCache struct {
	mu     sync.Mutex
	parsed map[string]parsedRules // by application
}

type parsedRules struct {
	configs []byte // that the rules are from
	rules   chat.WidgetRules
}

// of returns the rules of an application. The caller must not modify them.
func (c *rulesCache) of(app chat.Application) (chat.WidgetRules, error) {
	c.mu.Lock()
	known, found := c.parsed[app.ID]
	c.mu.Unlock()
	if found && bytes.Equal(known.configs, app.WidgetConfigs) {
		return known.rules, nil
	}
	rules, err := app.Rules()
	if err != nil {
		return chat.WidgetRules{}, fmt.Errorf("reading the widgetConfigs of application %s: %w", app.ID, err)
	}
	if len(app.WidgetConfigs) <= maxCachedConfigs {
		c.add(app.ID, parsedRules{configs: app.WidgetConfigs, rules: rules})
	}
	return rules, nil
}

func (c *rulesCache) add(appID string, p parsedRules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed == nil || len(c.parsed) >= maxCachedRules {
		c.parsed = make(map[string]parsedRules)
	}
	c.parsed[appID] = p
}
