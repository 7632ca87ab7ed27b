#include "gpu/cuda/msm_curve.cuh"

const struct msm_curve msm_bn254 = msm_curve_of<bn254>();
