#pragma once
#include <librtmp/log.h>
#include <librtmp/rtmp.h>
