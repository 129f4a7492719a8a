#!/bin/sh
# A complete tool: submits the request of this run on descriptor 8, once, and prints what the provider answered.
# Exit: 0 answered, 1 a signed failure, 66 no request, 69 no stream, 75 no whole response (then do nothing again).
export LC_ALL=C

[ -r /run/chio/request.frame ] || exit 66
[ -S /dev/fd/8 ] || exit 69

# The bytes of a member that is a list of decimal numbers.
bytes_of() { sed "s/.*\"$1\":\[\([0-9,]*\)\].*/\1/" | tr ',' '\n' | awk '{ printf "%c", $1 }'; }

# Once, whole, unchanged. A broker that has closed already may have left a response, so a failure here is no end.
cat /run/chio/request.frame 2>/dev/null >&8

# Four bytes of length, then the response; exactly as many bytes, since nothing else ever comes.
set -- $(head -c 4 <&8 | od -An -v -tu1)
[ $# -eq 4 ] || exit 75
length=$(($1 << 24 | $2 << 16 | $3 << 8 | $4))
[ "$length" -le 33554432 ] || exit 75
answer=$(head -c "$length" <&8)
[ "${#answer}" -eq "$length" ] || exit 75

case $answer in
  '{"accepted":true,'*) printf '%s\n' "$answer" | bytes_of response | bytes_of body ;;
  *) printf '%s\n' "$answer" | sed 's/.*"errorCode":"\([a-z._]*\)".*/\1/' >&2; exit 1 ;;
esac
