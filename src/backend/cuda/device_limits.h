#pragma once

#include "backend/cuda/device.h"
#include "backend/profilable.h"

namespace edgerunner::cuda {

// Measures what the device does at most: reading its memory, and the units that multiply. Takes
// memory for that, at most 2 GiB, and gives it back; under a second.
MachineLimits measure_device_limits(const DeviceProperties& device);

}  // namespace edgerunner::cuda
