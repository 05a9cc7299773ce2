// The linker may take libFuzzer's own main instead, which does the same.
FuzzProgram.run()
