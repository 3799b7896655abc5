//! `weir-bindgen FOLDER INPUT`: writes the module, the JavaScript around it, and its types.

use wasm_bindgen_cli_support::Bindgen;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, input] = &words[..] else { panic!("usage: weir-bindgen FOLDER INPUT") };
    let mut bindgen = Bindgen::new();
    let done = bindgen
        .input_path(input)
        .web(true)
        .and_then(|own| own.omit_default_module_path(true).typescript(true).generate(folder));
    if let Err(error) = done {
        eprintln!("weir-bindgen: {error:#}");
        std::process::exit(1);
    }
}
