/* Placeholder: refuses until the real program stands here. */
int main(void) { return 1; }
