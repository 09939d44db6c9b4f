package account

import "slices"

// Role determines a user's permissions. A user has one role.
type Role string

const (
	Operator  Role = "operator"  // of the installation; belongs to no company
	Owner     Role = "owner"     // of a company
	Developer Role = "developer" // of a company: tokens, applications, templates, webhooks
	Agent     Role = "agent"     // of a company: answers visitors
)

// Roles lists all roles, most privileged first.
func Roles() []Role { return []Role{Operator, Owner, Developer, Agent} }

// Known reports whether r is a role.
func (r Role) Known() bool { return slices.Contains(Roles(), r) }

// Permission is one kind of operation.
type Permission string

const (
	Tokens            Permission = "tokens"
	ReadApplications  Permission = "applications.read"
	WriteApplications Permission = "applications.write"
	ReadTemplates     Permission = "templates.read"
	WriteTemplates    Permission = "templates.write"
	ApproveTemplates  Permission = "templates.approve"
	Webhooks          Permission = "webhooks"
	Inbox             Permission = "inbox"
	People            Permission = "people"
	Audit             Permission = "audit"
	Visitors          Permission = "visitors"
	Streams           Permission = "streams"
	Companies         Permission = "companies"
)

// Permissions returns the permissions of a role. It is the only place that defines them.
func (r Role) Permissions() []Permission {
	switch r {
	case Operator:
		return []Permission{
			Tokens, ReadApplications, WriteApplications, ReadTemplates, WriteTemplates, ApproveTemplates, Webhooks, Inbox, People, Audit, Visitors,
			Streams, Companies,
		}
	case Owner:
		return []Permission{
			Tokens, ReadApplications, WriteApplications, ReadTemplates, WriteTemplates, ApproveTemplates, Webhooks, Inbox, People, Audit, Visitors,
		}
	case Developer:
		return []Permission{Tokens, ReadApplications, WriteApplications, ReadTemplates, WriteTemplates, Webhooks}
	case Agent:
		return []Permission{ReadApplications, ReadTemplates, Inbox}
	}
	return nil
}

// May reports whether a role has a permission.
func (r Role) May(p Permission) bool { return slices.Contains(r.Permissions(), p) }
