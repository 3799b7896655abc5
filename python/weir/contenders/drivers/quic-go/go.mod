// Built by `weir stack contender quic-go`, once per version of quic-go.
module weir-quic-go

go 1.26.0

require github.com/quic-go/quic-go v0.65.0
