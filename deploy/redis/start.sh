#!/bin/sh
# Starts Redis with the users of users.acl; their passwords (letters and digits) come from the environment.
set -eu
users=${TMPDIR:-/tmp}/users.acl
umask 077
sed -e "s/\$REDIS_CLIENT_API_PASSWORD/${REDIS_CLIENT_API_PASSWORD:?}/" \
    -e "s/\$REDIS_WIDGET_API_PASSWORD/${REDIS_WIDGET_API_PASSWORD:?}/" \
    -e "s/\$REDIS_SOCKET_GATEWAY_PASSWORD/${REDIS_SOCKET_GATEWAY_PASSWORD:?}/" \
    -e "s/\$REDIS_PANEL_PASSWORD/${REDIS_PANEL_PASSWORD:?}/" \
    -e "s/\$REDIS_PROCESSOR_PASSWORD/${REDIS_PROCESSOR_PASSWORD:?}/" \
    -e "s/\$REDIS_OPERATOR_PASSWORD/${REDIS_OPERATOR_PASSWORD:?}/" \
    "$(dirname "$0")/users.acl" > "$users"
exec redis-server --aclfile "$users" --save '' --appendonly no "$@"
