#pragma once

#include <string>

#include "server/engine.h"
#include "server/router.h"

namespace edgerunner::server {

// Every path that the server answers. The engine must outlive the router.
Router make_router(Engine& engine, std::string api_key);

}  // namespace edgerunner::server
