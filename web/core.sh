#!/bin/sh
# Compiles the simulator for browsers into web/core. `core.sh --check` only says what is missing, if anything is.
#
# The target wasm32-unknown-unknown comes from rustup, or is built from Debian's sources of the standard library, which
# are for Debian's own compiler.
set -eu
cd "$(dirname "$0")/.."

WANTED=$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"$/\1/p;}' Cargo.lock)
DEBIAN_CARGO=/usr/bin/cargo
DEBIAN_SOURCES=/usr/src/rustc-*/library

missing=''
need() { missing="$missing
  - $1"; }

toolchain=''
if rustup target list --installed 2>/dev/null | grep -q '^wasm32-unknown-unknown$'; then
    toolchain=rustup
elif [ -x "$DEBIAN_CARGO" ] && ls -d $DEBIAN_SOURCES >/dev/null 2>&1; then
    toolchain=debian
else
    need 'the target wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown; Debian: rustc-web cargo-web rust-web-src)'
fi
if [ "$toolchain" = debian ] && ! rust-lld -flavor wasm --version >/dev/null 2>&1; then
    need 'the linker rust-lld (Debian: rust-web-llvm and the package lld-NN of the same LLVM, such as lld-22)'
fi
# Installing wasm-bindgen takes minutes. Where it is not, a program over its library does the same.
if [ "$(wasm-bindgen --version 2>/dev/null)" = "wasm-bindgen $WANTED" ]; then
    bindgen='wasm-bindgen --target web --omit-default-module-path --out-dir web/core'
elif grep -q "^wasm-bindgen-cli-support = \"=$WANTED\"$" web/bindgen/Cargo.toml; then
    bindgen='cargo run --quiet --manifest-path web/bindgen/Cargo.toml --locked --target-dir target/bindgen -- web/core'
else
    need "wasm-bindgen $WANTED in web/bindgen/Cargo.toml"
fi
node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' 2>/dev/null || need 'Node.js 20.19 or newer'
npm --version >/dev/null 2>&1 || need 'npm'
if [ -n "$missing" ]; then
    echo "The laboratory cannot be built on this machine yet. Please install:$missing" >&2
    exit 1
fi
[ "${1-}" != --check ] || exit 0

build="build --profile web --package weir-web --target wasm32-unknown-unknown --target-dir target/web --locked"
case $toolchain in
rustup) cargo $build ;;
debian)
    # Its compiler is stable, and building the standard library is not.
    RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 "$DEBIAN_CARGO" $build -Zbuild-std=std,panic_abort
    ;;
esac
$bindgen target/web/wasm32-unknown-unknown/web/weir_web.wasm
