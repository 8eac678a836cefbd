// The command line of ostree-ext, as its own crate defines it.
fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(ostree_ext::cli::run_from_iter(std::env::args_os()))
}
