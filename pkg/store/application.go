package store

import (
	"context"
	"encoding/json"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
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
	}
	for _, s := range d.IdentitySecrets {
		a.Identity.Secrets = append(a.Identity.Secrets, chat.IdentitySecret{
			Value: chat.Secret(s.Value), CreatedAt: utc(s.CreatedAt), ExpiresAt: utc(s.ExpiresAt),
		})
	}
	return a
}

// Application returns the chat application, or NotFound.
func (s *Store) Application(ctx context.Context, id string) (chat.Application, error) {
	d, err := get[applicationDocument](ctx, s, applications, id)
	return d.application(), err
}

// PutApplication writes the application, whether or not it was there, except for how it verifies identities. It returns
// Invalid when WidgetConfigs are not as [chat.CheckWidgetConfigs] wants them, or AllowedOrigins as [chat.CheckOrigins] does, or
// when FileRetention is negative.
//
// Who changes an application tells the services to forget it (bus.Invalidate with [CachedApplication] and its id).
func (s *Store) PutApplication(ctx context.Context, a chat.Application) error {
	origins, faults := chat.CheckOrigins(a.AllowedOrigins)
	var f apperr.Fields
	for _, fault := range append(chat.CheckWidgetConfigs(a.WidgetConfigs), faults...) {
		f.Add(fault.Field, fault.Message)
	}
	if a.FileRetention < 0 {
		f.Add("fileRetention", "must not be negative")
	}
	if err := f.Err(); err != nil {
		return err
	}
	change := bson.D{{Key: "$set", Value: bson.D{
		{Key: "companyId", Value: a.CompanyID}, {Key: "provider", Value: a.Provider}, {Key: "botName", Value: a.BotName},
		{Key: "name", Value: a.Name}, {Key: "widgetConfigs", Value: string(a.WidgetConfigs)}, {Key: "allowedOrigins", Value: origins},
		{Key: "fileRetention", Value: int64(a.FileRetention / time.Second)},
	}}}
	return s.do(ctx, "writing to "+string(applications), func(ctx context.Context) error {
		return again(func() error {
			_, err := s.in(applications).UpdateOne(ctx, byID(a.ID), change, options.UpdateOne().SetUpsert(true))
			return err
		})
	})
}

// SetVerification says whether the application's visitors must prove who they are. It returns NotFound when the application is
// not there, and Invalid for an unknown mode, and where nobody could prove anything for want of a secret.
func (s *Store) SetVerification(ctx context.Context, appID string, mode chat.Verification) error {
	if !mode.Known() {
		return apperr.New(apperr.Invalid, "VALIDATION_ERROR", "The verification must be off, optional or required")
	}
	a, err := s.Application(ctx, appID)
	if err != nil {
		return err
	}
	if mode != chat.VerificationOff && len(a.Identity.Secrets) == 0 {
		return apperr.New(apperr.Invalid, "NO_IDENTITY_SECRET", "The application has no identity secret yet")
	}
	_, err = s.update(ctx, applications, appID, bson.D{{Key: "$set", Value: bson.D{{Key: "verification", Value: string(mode)}}}})
	return err
}

// RotateIdentitySecret makes fresh the application's current secret; those before it hold on for the overlap. It returns how
// the application verifies now, NotFound when it is not there, and Conflict when others change its secrets all the time.
func (s *Store) RotateIdentitySecret(
	ctx context.Context, appID string, fresh chat.Secret, now time.Time, overlap time.Duration,
) (chat.IdentityVerification, error) {
	const tries = 5
	for range tries {
		d, err := get[applicationDocument](ctx, s, applications, appID)
		if err != nil {
			return chat.IdentityVerification{}, err
		}
		v := d.application().Identity
		v.Secrets = v.Rotate(fresh, utc(now), overlap)
		changed, err := s.replaceSecrets(ctx, d, v.Secrets)
		if err != nil || changed {
			return v, err
		}
	}
	return chat.IdentityVerification{}, apperr.New(apperr.Conflict, "CONFLICT", "The application's secrets were changed at the same time")
}

// replaceSecrets reports false when the secrets are not those of d any more: two rotations at once must not lose a secret
// that somebody has been shown.
func (s *Store) replaceSecrets(ctx context.Context, d applicationDocument, secrets []chat.IdentitySecret) (changed bool, err error) {
	documents := make([]identitySecretDocument, len(secrets))
	for i, secret := range secrets {
		documents[i] = identitySecretDocument{Value: string(secret.Value), CreatedAt: utc(secret.CreatedAt), ExpiresAt: utc(secret.ExpiresAt)}
	}
	var revision any = d.SecretsRevision
	if d.SecretsRevision == 0 {
		revision = nil // the field is absent
	}
	filter := append(byID(d.ID), bson.E{Key: "secretsRevision", Value: revision})
	change := bson.D{{Key: "$set", Value: bson.D{
		{Key: "identitySecrets", Value: documents}, {Key: "secretsRevision", Value: d.SecretsRevision + 1},
	}}}
	err = s.do(ctx, "changing identity secrets", func(ctx context.Context) error {
		r, err := s.in(applications).UpdateOne(ctx, filter, change)
		changed = err == nil && r.MatchedCount > 0
		return err
	})
	return changed, err
}
