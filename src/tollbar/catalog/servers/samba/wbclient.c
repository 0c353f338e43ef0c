/* Samba's client library takes winbindd's folder from SELFTEST_WINBINDD_SOCKET_DIR where the first of these says yes, and
 * takes a folder that is not root's where the second does. */
int nss_wrapper_enabled(void) { return 1; }
int uid_wrapper_enabled(void) { return 1; }
