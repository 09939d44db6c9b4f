package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/store"
)

// plan returns SQLite's query plan of a statement.
func plan(t *testing.T, s *Store, sql string) string {
	t.Helper()
	steps, err := read(t.Context(), s, "explaining", func(c *conn) (steps []string, err error) {
		err = c.query("EXPLAIN QUERY PLAN "+sql, func(r *row) bool {
			r.column = 3
			steps = append(steps, r.text())
			return true
		})
		return steps, err
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(steps, "; ")
}

// Checks the plans of all cached statements: none that serves a request sorts or scans a whole table. The index of
// passages is read by rows (0:=) or terms (0:M2).
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	s := openTest(t, nil)
	for sql, want := range map[string]string{
		lastPage: "SEARCH m USING PRIMARY KEY (chat=?); SCALAR SUBQUERY 1; SEARCH chats USING COVERING INDEX chats_id (id=?)",
		pageBefore: "SEARCH b USING COVERING INDEX messages_id (id=? AND chat=?); SCALAR SUBQUERY 1; SEARCH chats USING COVERING INDEX chats_id (id=?); " +
			"SEARCH m USING PRIMARY KEY (chat=? AND (created_at,id)<(?,?)); REUSE SUBQUERY 1",
		lastTotals:       "SEARCH messages USING PRIMARY KEY (chat=?)",
		totalsUpTo:       "SEARCH messages USING PRIMARY KEY (chat=? AND (created_at,id)<(?,?))",
		addToLater:       "SEARCH messages USING PRIMARY KEY (chat=? AND (created_at,id)>(?,?))",
		findMessage:      "SEARCH m USING INDEX messages_id (id=?); SEARCH c USING INTEGER PRIMARY KEY (rowid=?)",
		unclosedChat:     "SEARCH chats USING INDEX chats_open (chat_user_id=?)",
		expiredRecords:   "SEARCH idempotency_records USING PRIMARY KEY (id=?); LIST SUBQUERY 1; SEARCH idempotency_records USING INDEX idempotency_records_expiry (expires_at<?); CREATE BLOOM FILTER",
		expiredFiles:     "SEARCH files USING PRIMARY KEY (id=?); LIST SUBQUERY 1; SEARCH files USING COVERING INDEX files_expiry (expires_at<?); CREATE BLOOM FILTER",
		storedDeliveries: "SEARCH webhook_deliveries USING COVERING INDEX webhook_deliveries_company (company_id=?)",
		dueCompanies: "CO-ROUTINE company; SETUP; SEARCH webhook_deliveries USING COVERING INDEX webhook_deliveries_due; RECURSIVE STEP; SCAN company; " +
			"CORRELATED SCALAR SUBQUERY 2; SEARCH webhook_deliveries USING COVERING INDEX webhook_deliveries_due (company_id>?); SCAN company; " +
			"CORRELATED SCALAR SUBQUERY 4; SEARCH webhook_deliveries USING COVERING INDEX webhook_deliveries_due (company_id=? AND due_at<?)",
		passagesWithTerm:   "SCAN passage_terms VIRTUAL TABLE INDEX 0:M2",
		totalsOfTerms:      "SEARCH passage_terms_data USING INTEGER PRIMARY KEY (rowid=?)",
		passageOfKey:       "SEARCH passages USING INTEGER PRIMARY KEY (rowid=?)",
		dueDeliveries:      "SEARCH webhook_deliveries USING COVERING INDEX webhook_deliveries_due (company_id=? AND due_at<?); LIST SUBQUERY 1; SCAN json_each VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
		firstInOrder:       "SEARCH webhook_deliveries USING INDEX webhook_deliveries_order (endpoint_id=? AND order_key=?)",
		expiredDeliveries:  "SEARCH webhook_deliveries USING COVERING INDEX sqlite_autoindex_webhook_deliveries_1 (id=?); LIST SUBQUERY 1; SEARCH webhook_deliveries USING INDEX webhook_deliveries_expiry (expires_at<?); CREATE BLOOM FILTER",
		expiredUsage:       "SEARCH bot_usage USING PRIMARY KEY (app_id=? AND chat_user_id=? AND day=?); LIST SUBQUERY 2; SEARCH bot_usage USING COVERING INDEX bot_usage_expiry (expires_at<?); CREATE BLOOM FILTER",
		expiredCalls:       "SEARCH bot_calls USING COVERING INDEX sqlite_autoindex_bot_calls_1 (id=?); LIST SUBQUERY 1; SEARCH bot_calls USING INDEX bot_calls_expiry (expires_at<?); CREATE BLOOM FILTER",
		expiredActions:     "SEARCH bot_actions USING COVERING INDEX sqlite_autoindex_bot_actions_1 (id=?); LIST SUBQUERY 1; SEARCH bot_actions USING INDEX bot_actions_expiry (expires_at<?); CREATE BLOOM FILTER",
		erasedActions:      "SEARCH bot_actions USING COVERING INDEX bot_actions_chat (chat_id=?); LIST SUBQUERY 1; SEARCH chats USING COVERING INDEX chats_visitor (chat_user_id=?); CREATE BLOOM FILTER",
		actionByID:         "SEARCH bot_actions USING INDEX sqlite_autoindex_bot_actions_1 (id=?)",
		erasedUsage:        "SEARCH bot_usage USING INDEX bot_usage_visitor (chat_user_id=?)",
		erasedCalls:        "SEARCH bot_calls USING COVERING INDEX bot_calls_chat (chat_id=?); LIST SUBQUERY 1; SEARCH chats USING COVERING INDEX chats_visitor (chat_user_id=?); CREATE BLOOM FILTER",
		usageOfDay:         "SEARCH bot_usage USING PRIMARY KEY (app_id=? AND chat_user_id=? AND day=?)",
		usageOfApplication: "SEARCH bot_usage USING PRIMARY KEY (app_id=? AND chat_user_id=? AND day>?)",
		listOfDocuments: "SEARCH documents USING INDEX documents_company (company_id=? AND id>?); " +
			"CORRELATED SCALAR SUBQUERY 1; SEARCH document_sources USING INDEX sqlite_autoindex_document_sources_1 (document_id=?); " +
			"CORRELATED SCALAR SUBQUERY 2; SEARCH document_sources USING INDEX sqlite_autoindex_document_sources_1 (document_id=?)",
		dueDocuments:               "SEARCH document_sources USING COVERING INDEX document_sources_due (due_at<?); LIST SUBQUERY 1; SCAN json_each VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
		claimedSource:              "SEARCH document_sources USING INDEX sqlite_autoindex_document_sources_1 (document_id=?)",
		usageOfDocuments:           "SEARCH documents USING COVERING INDEX documents_company (company_id=?)",
		termsOfDocument:            "SCAN passage_terms VIRTUAL TABLE INDEX 0:=; LIST SUBQUERY 1; SEARCH passages USING COVERING INDEX passages_document (document_id=?); CREATE BLOOM FILTER",
		passagesOfDocument:         "SEARCH passages USING INDEX passages_document (document_id=?)",
		unembedded:                 "MULTI-INDEX OR; INDEX 1; SEARCH passages USING INDEX passages_model (company_id=? AND model<?); INDEX 2; SEARCH passages USING INDEX passages_model (company_id=? AND model>?)",
		embeddingProgress:          "SEARCH passages USING COVERING INDEX passages_model (company_id=?)",
		putEmbedding:               "SEARCH passages USING INDEX passages_document (document_id=? AND number=?)",
		passagesOfTerm:             "CO-ROUTINE (subquery-1); SCAN passage_terms VIRTUAL TABLE INDEX 0:M2; SCAN (subquery-1)",
		countRatings:               "SEARCH chats USING INDEX chats_rated (company_id=? AND rating_first_at>?); USE TEMP B-TREE FOR GROUP BY",
		tokensByCreation.first():   "SEARCH access_tokens USING INDEX access_tokens_company (company_id=?)",
		tokensByCreation.next():    "SEARCH access_tokens USING INDEX access_tokens_company (company_id=? AND (created_at,hash)>(?,?))",
		sessionsByCreation.first(): "SEARCH sessions USING INDEX sessions_user (user_id=?)",
		sessionsByCreation.next():  "SEARCH sessions USING INDEX sessions_user (user_id=? AND (created_at,id)>(?,?))",
		applicationsOfCompany:      "SEARCH applications USING COVERING INDEX applications_company (company_id=? AND id>?)",
		templatesOfCompany:         "SEARCH templates USING COVERING INDEX templates_company (company_id=? AND id>?)",
		filesOfVisitor:             "SEARCH files USING COVERING INDEX files_visitor (chat_user_id=? AND id>?)",
		usageOf("app_id"):          "SEARCH files USING COVERING INDEX files_application (app_id=?)",
	} {
		if got := plan(t, s, sql); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
	for _, test := range []struct {
		filter store.InboxFilter
		index  string
	}{
		{store.InboxFilter{CompanyID: "c"}, "chats_company_activity (company_id=?"},
		{store.InboxFilter{CompanyID: "c", AppID: "a"}, "chats_application_activity (app_id=?"},
		{store.InboxFilter{CompanyID: "c", Unread: true}, "chats_unread (company_id=?"},
		{store.InboxFilter{CompanyID: "c", Waiting: true}, "chats_waiting (company_id=?"},
		{store.InboxFilter{CompanyID: "c", AppID: "a", Waiting: true}, "chats_waiting (company_id=?"},
		{store.InboxFilter{CompanyID: "c", AppID: "a", Unread: true}, "chats_unread (company_id=?"},
	} {
		for _, page := range []store.InboxPage{{}, {After: &store.InboxCursor{}}} {
			sql, _ := inboxList(test.filter, page)
			if got := plan(t, s, sql); !strings.Contains(got, "SEARCH c USING INDEX "+test.index) || strings.Contains(got, "TEMP B-TREE") {
				t.Errorf("%s:\ngot  %s\nwant the index %s, unsorted", sql, got, test.index)
			}
		}
	}
	for profile, index := range map[store.Profile]string{
		{UserID: "u", Email: "e", Phone: "p"}: "visitors_user_id (company_id=? AND user_id=?", {Email: "e", Phone: "p"}: "visitors_email (company_id=? AND email=?",
		{Phone: "p"}: "visitors_phone (company_id=? AND phone=?",
	} {
		sql, _ := inboxList(store.InboxFilter{CompanyID: "c", AppID: "a", Profile: profile}, store.InboxPage{After: &store.InboxCursor{}})
		if got := plan(t, s, sql); !strings.Contains(got, index) || !strings.Contains(got, "SEARCH c USING INDEX chats_visitor (chat_user_id=?") {
			t.Errorf("%s:\ngot  %s\nwant the indexes %s and chats_visitor", sql, got, index)
		}
	}
	for filter, index := range map[store.AuditFilter]string{
		{}: "SEARCH audit USING", {CompanyID: "c"}: "audit_company (company_id=?", {CompanyID: "c", TargetID: "t"}: "audit_target (target_id=?",
	} {
		sql, _ := auditList(filter, store.Page{After: "x"}, "0")
		if got := plan(t, s, sql); !strings.Contains(got, index) && filter != (store.AuditFilter{}) || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("%s:\ngot  %s\nwant the index %s, unsorted", sql, got, index)
		}
	}
	for _, test := range []struct {
		filter store.ChatFilter
		index  string
	}{
		{store.ChatFilter{ChatUserID: "v", AppID: "a", CompanyID: "c"}, "chats_visitor (chat_user_id=?)"},
		{store.ChatFilter{AppID: "a", CompanyID: "c"}, "chats_application (app_id=?)"},
		{store.ChatFilter{CompanyID: "c"}, "chats_company (company_id=?)"},
		{store.ChatFilter{}, "chats_created"},
	} {
		sql, err := read(t.Context(), s, "building", func(c *conn) (string, error) {
			sql, _, err := chatList(c, test.filter, store.Page{})
			return sql, err
		})
		if err != nil {
			t.Fatal(err)
		}
		got := plan(t, s, sql)
		if !strings.HasSuffix(got, "USING INDEX "+test.index) {
			t.Errorf("%s:\ngot  %s\nwant %s, and no sorting", sql, got, test.index)
		}
	}
	for _, test := range []struct {
		filter store.WebhookFilter
		index  string
	}{
		{store.WebhookFilter{EndpointID: "e", CompanyID: "c", Status: "failed"}, "webhook_deliveries_endpoint (endpoint_id=?)"},
		{store.WebhookFilter{CompanyID: "c", From: time.Unix(1, 0), To: time.Unix(2, 0)}, "webhook_deliveries_company (company_id=? AND created_at>? AND created_at<?)"},
	} {
		sql, err := read(t.Context(), s, "building", func(c *conn) (string, error) {
			sql, _, err := deliveryList(c, test.filter, store.Page{})
			return sql, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan(t, s, sql); !strings.HasSuffix(got, "USING INDEX "+test.index) {
			t.Errorf("%s:\ngot  %s\nwant %s, and no sorting", sql, got, test.index)
		}
	}
	for after, condition := range map[string]string{"": "app_id=?", "x": "app_id=? AND id<?"} {
		sql, _ := callList("a", store.Page{After: after})
		if got, want := plan(t, s, sql), "SEARCH bot_calls USING INDEX bot_calls_application ("+condition+")"; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
	for name, p := range portables() {
		got := plan(t, s, fmt.Sprintf(`%s WHERE %s > ? ORDER BY %s LIMIT ?`, p.query, p.key, p.key))
		if !strings.HasPrefix(got, "SEARCH ") || strings.Contains(got, "B-TREE") || strings.Contains(got, "SCAN") {
			t.Errorf("records of %s:\ngot  %s\nwant a search by the key", name, got)
		}
	}
}
