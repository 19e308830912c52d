# Stands for a program: so many epochs, at a rate, into a folder.
set -eu
mkdir -p "$3"
epoch=1
while [ "$epoch" -le "$1" ]; do
  echo "epoch $epoch of $1 at rate $2" | tee -a "$3/log"
  epoch=$((epoch + 1))
done
