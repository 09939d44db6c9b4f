package lookup_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/client-api/internal/lookup"
)

// largeTemplates is a store with templates of the largest size.
type largeTemplates struct {
	lookup.Store
	t *testing.T
}

const templateBytes, stored = 125 << 10, 100

func (s largeTemplates) Templates(_ context.Context, _ string, p store.Page) (found []chat.MessageTemplate, _ error) {
	if p.Limit*templateBytes > 2<<20 {
		s.t.Errorf("got a read of %d templates, want at most 2 MiB at once", p.Limit)
	}
	for n := range stored {
		id := fmt.Sprintf("%03d", n)
		if id > p.After && len(found) < p.Limit {
			found = append(found, chat.MessageTemplate{ID: id, Text: strings.Repeat("x", templateBytes)})
		}
	}
	return found, nil
}

// A page of large templates is short, and the next ones have the rest.
func TestPagesOfTemplatesAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	s := lookup.New(largeTemplates{t: t}, time.Now)
	total, page := 0, store.Page{Limit: stored}
	for {
		found, next, err := s.Templates(t.Context(), "company", "", page)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(found) * templateBytes; size > lookup.MaxTemplateBytes+templateBytes {
			t.Fatalf("got a page of %d bytes, want at most %d and one template", size, lookup.MaxTemplateBytes)
		}
		total += len(found)
		if next == "" {
			break
		}
		page.After = next
	}
	if total != stored {
		t.Errorf("got %d templates on all pages, want %d", total, stored)
	}
}
