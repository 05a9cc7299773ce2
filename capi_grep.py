import subprocess,re,os,sys
root='/tmp/w/txt'
files=[]
for d in ['Tests','docs','README.md','CHANGELOG.md','CONTRIBUTING.md','deploy','scripts','Benchmarks','Sources','Makefile','.ci']:
    p=os.path.join(root,d)
    if os.path.isfile(p): files.append(p)
    for b,_,fs in os.walk(p):
        if '/Corpus' in b or '/.build' in b or 'Sources/ControlAPI' in b: continue
        for x in fs:
            if x.endswith(('.swift','.py','.md','.sh','.yaml','.yml','.txt','.html','.json')): files.append(os.path.join(b,x))
text={f:open(f,errors='replace').read() for f in files}
out=subprocess.run(['python3','/tmp/w/d/capi_lits.py'],capture_output=True,text=True).stdout.splitlines()
for line in out:
    loc,s=line.split(': ',1)
    parts=re.split(r'\\\((?:[^()]|\([^()]*(?:\([^()]*\)[^()]*)*\))*\)',s)
    grams=set()
    for p in parts:
        w=p.split()
        for i in range(len(w)-2): grams.add(' '.join(w[i:i+3]))
        if len(w)==2: grams.add(' '.join(w))
    for g in sorted(grams):
        g2=g.strip('.,;:')
        for f,t in text.items():
            if g2 in t:
                for ln in t.splitlines():
                    if g2 in ln:
                        st=ln.strip()
                        if st.startswith(('///','//','#')) and 'md' not in f[-3:]: continue
                        if f.endswith('.md') or '"' in st or "'" in st or '/Tests/' in f:
                            print(loc,'|',g2,'|',f.replace(root+'/',''),'|',st[:170])
