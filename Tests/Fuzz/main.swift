// The linker may use libFuzzer's own main instead, which does the same.
FuzzProgram.run()
