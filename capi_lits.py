import re,glob
for f in sorted(glob.glob('/tmp/w/txt/Sources/ControlAPI/**/*.swift',recursive=True)):
    for n,l in enumerate(open(f),1):
        if l.strip().startswith('//'): continue
        for m in re.finditer(r'"((?:[^"\\]|\\\([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*\)|\\.)*)"',l):
            s=m.group(1)
            if len(s.split())>=2: print(f.split('ControlAPI/')[1]+':'+str(n)+': '+s)
