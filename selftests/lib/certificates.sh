#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# certificates.sh FOLDER AUTHORITY NAME...: makes an authority unless it exists, and a certificate
# and key for each name. They are valid for CERTIFICATE_DAYS (default 10; below 0: expired).
set -euo pipefail

folder=$1 authority=$2
shift 2
days=${CERTIFICATE_DAYS:-10}
umask 077
mkdir -p "$folder"
cd "$folder"

if [[ ! -e $authority.key ]]; then
	certtool --generate-privkey --key-type ecdsa --outfile "$authority.key"
	cat >"$authority.cfg" <<-END
		cn = $authority
		ca
		cert_signing_key
		crl_signing_key
		expiration_days = 100
	END
	certtool --generate-self-signed --load-privkey "$authority.key" \
		--template "$authority.cfg" --outfile "$authority.pem"
fi
for name; do
	certtool --generate-privkey --key-type ecdsa --outfile "$name.key"
	cat >"$name.cfg" <<-END
		cn = $name
		dns_name = $name
		tls_www_client
		tls_www_server
		signing_key
	END
	if ((days < 0)); then
		cat >>"$name.cfg" <<-END
			activation_date = "2020-01-01 00:00:00"
			expiration_date = "2020-02-01 00:00:00"
		END
	else
		echo "expiration_days = $days" >>"$name.cfg"
	fi
	certtool --generate-certificate --load-privkey "$name.key" --load-ca-privkey "$authority.key" \
		--load-ca-certificate "$authority.pem" --template "$name.cfg" --outfile "$name.pem"
done
