// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loaded into QEMU where the host has no render node: "-display egl-headless" asks its egl_init()
 * for a context of OpenGL, which needs such a node. This egl_init() takes Mesa's platform without
 * any device, so that the processor draws. It sets variables of QEMU (ui/egl-helpers.c).
 */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define CORE	2	/* DISPLAY_GL_MODE_CORE */

__attribute__((noreturn))
static void fail(const char *what, const char *name)
{
	fprintf(stderr, "lab: no GPU: %s %s\n", what, name);
	exit(1);
}

static void *of_qemu(const char *name)
{
	void *at = dlsym(RTLD_DEFAULT, name);

	if (!at)
		fail("selftests/lab/surfaceless.c does not fit this QEMU, which has no", name);
	return at;
}

bool egl_init(const char *rendernode, int mode, void **errp)
{
	static const EGLint wanted[] = {
		EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT,
		EGL_RED_SIZE, 5, EGL_GREEN_SIZE, 5, EGL_BLUE_SIZE, 5, EGL_NONE,
	};
	static const EGLint profile[] = {
		EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE,
	};
	EGLConfig *config = of_qemu("qemu_egl_config");
	EGLDisplay display;
	EGLContext context;
	EGLint n = 0;

	(void)rendernode;
	(void)mode;
	(void)errp;
	display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
	if (!display || !eglInitialize(display, NULL, NULL))
		fail("Mesa has no", "surfaceless EGL");
	if (!eglBindAPI(EGL_OPENGL_API) ||
	    !eglChooseConfig(display, wanted, config, 1, &n) || n != 1)
		fail("Mesa's surfaceless EGL has no", "OpenGL");
	context = eglCreateContext(display, *config, EGL_NO_CONTEXT, profile);
	if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
		fail("Mesa's surfaceless EGL gives no", "context");
	*(EGLDisplay *)of_qemu("qemu_egl_display") = display;
	*(EGLContext *)of_qemu("qemu_egl_rn_ctx") = context;
	*(int *)of_qemu("qemu_egl_mode") = CORE;
	*(int *)of_qemu("display_opengl") = 1;
	return true;
}
