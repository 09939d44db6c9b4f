package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/account"
)

// Index is an index required by the store's queries.
type Index struct {
	Collection string
	Name       string
	Keys       bson.D        // field -> 1 ascending, -1 descending
	Expires    bool          // MongoDB deletes a document after the time in the only key
	After      time.Duration // how long after it
}

// Indexes lists all indexes except those of _id. [Store.EnsureIndexes] creates them, in the same operator step as the
// streams; services never create any.
func Indexes() []Index {
	return []Index{
		index(accessTokens, "company", asc("companyId"), asc("createdAt"), asc("_id")),
		index(applications, "company", asc("companyId"), asc("_id")),
		index(templates, "company", asc("companyId"), asc("_id")),
		index(identities, "visitor", asc("chatUserId")),
		index(owners, "visitor", asc("resolvesTo")),
		index(chats, "newest", desc("createdAt"), asc("_id")),
		index(chats, "company", asc("companyId"), desc("createdAt"), asc("_id")),
		index(chats, "application", asc("appId"), desc("createdAt"), asc("_id")),
		index(chats, "visitor", asc("chatUserId"), desc("createdAt"), asc("_id")),
		index(chats, "companyActivity", asc("companyId"), desc("windowStartedAt"), asc("_id")),
		index(chats, "applicationActivity", asc("appId"), desc("windowStartedAt"), asc("_id")),
		index(
			chats, "waiting",
			asc("companyId"), asc("control.agent"), asc("control.assignee"), asc("closedAt"),
			asc("control.changedAt"), asc("_id"),
		),
		index(chats, "rated", asc("companyId"), asc("ratedAt")),
		index(visitors, "company", asc("companyId"), asc("_id")),
		index(visitors, "userId", asc("companyId"), asc("userId")),
		index(visitors, "email", asc("companyId"), asc("email")),
		index(visitors, "phone", asc("companyId"), asc("phone")),
		index(messages, "side", asc("chatId"), asc("isFromSupport"), asc("order")),
		index(files, "visitor", asc("chatUserId"), asc("_id")),
		index(files, "sender", asc("senderId"), asc("expiresAt"), asc("size")),
		index(files, "address", asc("address"), asc("expiresAt"), asc("size")),
		index(files, "company", asc("companyId"), asc("expiresAt"), asc("size")),
		index(files, "application", asc("appId"), asc("expiresAt"), asc("size")),
		index(users, "company", asc("companyId"), asc("_id")),
		index(sessions, "user", asc("userId"), asc("createdAt"), asc("_id")),
		index(audit, "company", asc("companyId"), desc("_id")),
		index(audit, "target", asc("targetId"), desc("_id")),
		index(webhookEndpoints, "company", asc("companyId"), asc("_id")),
		index(botSettings, "company", asc("companyId"), asc("_id")),
		index(modelConnections, "company", asc("companyId"), asc("_id")),
		// One index for an application's days, whose chatUserId is empty, and for the erasure of a visitor.
		index(botUsage, "visitor", asc("chatUserId"), asc("appId"), asc("day")),
		index(botCalls, "application", asc("appId"), desc("_id")),
		index(botCalls, "chat", asc("chatId")),
		index(botActions, "chat", asc("chatId")),
		index(knowledgeDocuments, "company", asc("companyId"), asc("_id"), asc("size")),
		index(knowledgeDocuments, "due", asc("source.dueAt"), asc("companyId")),
		index(passages, "company", asc("companyId"), asc("_id")),
		index(passages, "terms", asc("companyId"), asc("terms")),
		index(passages, "model", asc("companyId"), asc("model")),
		index(passages, "document", asc("documentId"), asc("revision")),
		index(webhookDeliveries, "due", asc("status"), asc("companyId"), asc("dueAt"), asc("endpointId")),
		index(webhookDeliveries, "order", asc("endpointId"), asc("orderKey"), asc("status"), asc("position")),
		index(webhookDeliveries, "endpoint", asc("endpointId"), desc("createdAt"), asc("_id")),
		index(webhookDeliveries, "company", asc("companyId"), desc("createdAt"), asc("_id"), asc("size")),
		index(webhookDeliveries, "chat", asc("chatId")),
		expiry(webhookDeliveries),
		expiry(botUsage),
		expiry(botCalls),
		expiry(botActions),
		expiry(sessions),
		expiry(files),
		expiry(requestKeys),
		{
			Collection: string(audit), Name: "expiry", Keys: bson.D{asc("at")},
			Expires: true, After: account.AuditRetention,
		},
	}
}

func index(c collection, name string, keys ...bson.E) Index {
	return Index{Collection: string(c), Name: name, Keys: keys}
}

func expiry(c collection) Index {
	return Index{Collection: string(c), Name: "expiry", Keys: bson.D{asc("expiresAt")}, Expires: true}
}

func asc(field string) bson.E  { return bson.E{Key: field, Value: int32(1)} }
func desc(field string) bson.E { return bson.E{Key: field, Value: int32(-1)} }

// String formats the index for index drift and documentation.
func (i Index) String() string {
	keys := make([]string, len(i.Keys))
	for n, k := range i.Keys {
		keys[n] = fmt.Sprintf("%s: %v", k.Key, k.Value)
	}
	text := i.Collection + "." + i.Name + " {" + strings.Join(keys, ", ") + "}"
	if i.Expires {
		text += " expiring"
	}
	if i.After > 0 {
		text += fmt.Sprintf(" after %d s", int(i.After.Seconds()))
	}
	return text
}

// EnsureIndexes creates missing indexes. It waits until they are built, however long that takes, and tries all of them
// before it returns the errors: an index with the same name and other keys, or a server without TTL indexes.
func (s *Store) EnsureIndexes(ctx context.Context) error {
	var failed []error
	for _, i := range Indexes() {
		o := options.Index().SetName(i.Name)
		if i.Expires {
			o.SetExpireAfterSeconds(int32(i.After.Seconds()))
		}
		_, err := s.in(collection(i.Collection)).Indexes().CreateOne(ctx, mongo.IndexModel{Keys: i.Keys, Options: o})
		if err != nil {
			failed = append(failed, translate(ctx, "creating the index "+i.String(), err))
		}
	}
	return errors.Join(failed...)
}

// IndexDrift lists, one line each, the declared indexes that are missing or differ. It ignores indexes added by
// operators.
func (s *Store) IndexDrift(ctx context.Context) (drift []string, err error) {
	existing := map[string][]Index{}
	for _, want := range Indexes() {
		if _, read := existing[want.Collection]; !read {
			if existing[want.Collection], err = s.existingIndexes(ctx, want.Collection); err != nil {
				return nil, err
			}
		}
		n := slices.IndexFunc(existing[want.Collection], func(i Index) bool { return i.Name == want.Name })
		if n < 0 {
			drift = append(drift, "missing: "+want.String())
		} else if got := existing[want.Collection][n]; got.String() != want.String() {
			drift = append(drift, "differs: "+got.String()+", want "+want.String())
		}
	}
	return drift, nil
}

func (s *Store) existingIndexes(ctx context.Context, c string) (indexes []Index, err error) {
	err = s.do(ctx, "listing the indexes of "+c, func(ctx context.Context) error {
		specifications, err := s.in(collection(c)).Indexes().ListSpecifications(ctx)
		if err != nil {
			return err
		}
		for _, spec := range specifications {
			i := Index{Collection: c, Name: spec.Name, Expires: spec.ExpireAfterSeconds != nil}
			if i.Expires {
				i.After = time.Duration(*spec.ExpireAfterSeconds) * time.Second
			}
			if err := bson.Unmarshal(spec.KeysDocument, &i.Keys); err != nil {
				return err
			}
			indexes = append(indexes, i)
		}
		return nil
	})
	if e, ok := errors.AsType[mongo.ServerError](err); ok && e.HasErrorCode(codeNamespaceNotFound) {
		return nil, nil // no collection, no indexes
	}
	return indexes, err
}

const codeNamespaceNotFound = 26
