. "$root/tests/recipes/cli/tiny.lib"
make_model
# What each precision takes of the kernels by name; amx and avx512_bf16 are not on every machine.
way() {
    "$elmgraft" bench bench.what=step model.path=tiny bench.rows=1 bench.length=8 bench.steps=1 \
        compute.threads=1 "compute.precision=$1" "compute.kernels=$2" > out 2> problem
    echo "$1 $2: exit $?; $(sed -n 's/^step  *//p' out)$(cat problem)"
}
way f32 auto
way f32 openblas
way f32 reference
way f32 amx
way f32-split reference
way f32-split openblas
way bf16 reference
way bf16 openblas
way auto openblas
