package mongodb

import (
	"context"
	"encoding/json"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type applicationDocument struct {
	ID              string                   `bson:"_id"`
	CompanyID       string                   `bson:"companyId"`
	Provider        string                   `bson:"provider"`
	BotName         string                   `bson:"botName"`
	Name            string                   `bson:"name"`
	WidgetConfigs   string                   `bson:"widgetConfigs"`
	AllowedOrigins  []string                 `bson:"allowedOrigins,omitempty"`
	FileRetention   int64                    `bson:"fileRetention,omitempty"` // seconds
	Verification    string                   `bson:"verification,omitempty"`
	IdentitySecrets []identitySecretDocument `bson:"identitySecrets,omitempty"`
	SecretsRevision int                      `bson:"secretsRevision,omitempty"` // how often the secrets have changed
	Support         string                   `bson:"support,omitempty"`         // JSON
}

type identitySecretDocument struct {
	Value     string    `bson:"value"`
	CreatedAt time.Time `bson:"createdAt"`
	ExpiresAt time.Time `bson:"expiresAt,omitempty"`
}

func (d applicationDocument) application() chat.Application {
	a := chat.Application{
		ID: d.ID, CompanyID: d.CompanyID, Provider: d.Provider, BotName: d.BotName, Name: d.Name,
		WidgetConfigs: json.RawMessage(d.WidgetConfigs), AllowedOrigins: d.AllowedOrigins,
		FileRetention: time.Duration(d.FileRetention) * time.Second,
		Identity:      chat.IdentityVerification{Mode: chat.Verification(d.Verification)},
		Support:       store.ParseSupport(d.Support),
	}
	for _, s := range d.IdentitySecrets {
		a.Identity.Secrets = append(a.Identity.Secrets, chat.IdentitySecret{
			Value: chat.Secret(s.Value), CreatedAt: store.UTC(s.CreatedAt), ExpiresAt: store.UTC(s.ExpiresAt),
		})
	}
	return a
}

func applicationDocumentOf(a chat.Application) applicationDocument {
	return applicationDocument{
		ID:              a.ID,
		CompanyID:       a.CompanyID,
		Provider:        a.Provider,
		BotName:         a.BotName,
		Name:            a.Name,
		WidgetConfigs:   string(a.WidgetConfigs),
		AllowedOrigins:  a.AllowedOrigins,
		FileRetention:   int64(a.FileRetention / time.Second),
		Verification:    string(a.Identity.Mode),
		IdentitySecrets: secretDocumentsOf(a.Identity.Secrets),
		SecretsRevision: len(a.Identity.Secrets),
		Support:         store.SupportText(a.Support),
	}
}

// Application implements [store.Applications].
func (s *Store) Application(ctx context.Context, id string) (chat.Application, error) {
	d, err := get[applicationDocument](ctx, s, applications, id)
	return d.application(), err
}

// PutApplication implements [store.Applications].
func (s *Store) PutApplication(ctx context.Context, a chat.Application) error {
	origins, err := store.CheckApplication(a)
	if err != nil {
		return err
	}
	a.AllowedOrigins = origins
	a.Identity = chat.IdentityVerification{}
	a.Support = chat.Support{}
	d := applicationDocumentOf(a)
	change := bson.D{{Key: "$set", Value: bson.D{
		{Key: "companyId", Value: d.CompanyID},
		{Key: "provider", Value: d.Provider},
		{Key: "botName", Value: d.BotName},
		{Key: "name", Value: d.Name},
		{Key: "widgetConfigs", Value: d.WidgetConfigs},
		{Key: "allowedOrigins", Value: d.AllowedOrigins},
		{Key: "fileRetention", Value: d.FileRetention},
	}}}
	return s.updateOrInsert(ctx, applications, a.ID, change, d)
}

// Applications implements [store.Applications].
func (s *Store) Applications(ctx context.Context, companyID string, p store.Page) ([]chat.Application, error) {
	return list(ctx, s, applications, ofCompany(companyID, byIDs(p)),
		func(d applicationDocument) (chat.Application, bool) { return d.application(), true })
}

// ChangeApplication implements [store.Applications]. It writes only if the secrets are still those that it has read:
// a concurrent rotation must not lose a secret that was shown to a user.
func (s *Store) ChangeApplication(ctx context.Context, id string, change store.ApplicationChange) error {
	for range attempts {
		d, err := get[applicationDocument](ctx, s, applications, id)
		if err != nil {
			return err
		}
		a, err := change.Apply(d.application())
		if err != nil {
			return err
		}
		fields := d.changedFields(change, a)
		if len(fields) == 0 {
			return nil
		}
		changed, err := s.updateOne(ctx, applications, d.unrotated(), bson.D{{Key: "$set", Value: fields}})
		if err != nil || changed {
			return err
		}
	}
	return apperr.New(apperr.Conflict, "CONFLICT", "The application's secrets were changed at the same time")
}

// changedFields returns the fields of a change, whose result is a.
func (d applicationDocument) changedFields(change store.ApplicationChange, a chat.Application) (fields bson.D) {
	if change.Secrets != nil {
		fields = append(fields,
			bson.E{Key: "identitySecrets", Value: secretDocumentsOf(a.Identity.Secrets)},
			bson.E{Key: "secretsRevision", Value: d.SecretsRevision + 1},
		)
	}
	if change.Verification != "" {
		fields = append(fields, bson.E{Key: "verification", Value: string(a.Identity.Mode)})
	}
	if change.Support != nil {
		fields = append(fields, bson.E{Key: "support", Value: store.SupportText(a.Support)})
	}
	return fields
}

// unrotated selects the application unless its secrets have changed since d was read.
func (d applicationDocument) unrotated() bson.D {
	var revision any = d.SecretsRevision
	if d.SecretsRevision == 0 {
		revision = nil // the field is absent
	}
	return append(byID(d.ID), bson.E{Key: "secretsRevision", Value: revision})
}

func secretDocumentsOf(secrets []chat.IdentitySecret) []identitySecretDocument {
	documents := make([]identitySecretDocument, len(secrets))
	for i, secret := range secrets {
		documents[i] = identitySecretDocument{
			Value: string(secret.Value), CreatedAt: store.UTC(secret.CreatedAt), ExpiresAt: store.UTC(secret.ExpiresAt),
		}
	}
	return documents
}
