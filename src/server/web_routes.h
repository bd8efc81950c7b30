#pragma once

#include "server/router.h"

namespace edgerunner::server {

// The page, at /, and what belongs to it.
void add_web_routes(Router& router);

}  // namespace edgerunner::server
